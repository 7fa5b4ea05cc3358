#!/usr/bin/python3
"""What Kubernetes and Kubeflow's operators make of the manifests in packaging/kubernetes.

    manifests.py lint FILE...              every field is one that the API has, and fields that belong together agree
    manifests.py pods FILE FOLDER [--old]  writes a script for each pod to FOLDER: its variables and its command

Kubernetes' own types come from its Python client (Debian's python3-kubernetes, API 1.22). The fields of PyTorchJob and
MPIJob stand below, as in the definitions of training-operator 1.9 and mpi-operator 0.8, and so do the variables that
the operators set; --old takes those that the training operator set before 1.7.
"""
import os
import pathlib
import re
import shlex
import sys

import kubernetes.client as client
import yaml

TYPES = {("v1", "Service"): "V1Service", ("v1", "PersistentVolumeClaim"): "V1PersistentVolumeClaim",
         ("batch/v1", "Job"): "V1Job"}
REPLICAS = {"replicas": "int", "restartPolicy": "str", "template": "V1PodTemplateSpec"}
POLICY = {"activeDeadlineSeconds": "int", "backoffLimit": "int", "cleanPodPolicy": "str", "suspend": "bool",
          "ttlSecondsAfterFinished": "int"}
OWN_TYPES = {
    ("kubeflow.org/v1", "PyTorchJob"): {
        "nprocPerNode": "str", "runPolicy": POLICY,
        "pytorchReplicaSpecs": {"Master": REPLICAS, "Worker": REPLICAS}},
    ("kubeflow.org/v2beta1", "MPIJob"): {
        "slotsPerWorker": "int", "sshAuthMountPath": "str", "launcherCreationPolicy": "str", "runPolicy": POLICY,
        "mpiImplementation": "str", "mpiReplicaSpecs": {"Launcher": REPLICAS, "Worker": REPLICAS}},
}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float)}


class Wrong(Exception):
    """A manifest that the API would refuse, or take otherwise than it is meant."""


def expect(holds, words):
    if not holds:
        raise Wrong(words)


def check(value, kind, where):
    """`value` is a `kind` of the API: a name of the Python client's, or a dictionary of our own fields."""
    if isinstance(kind, dict):
        expect(isinstance(value, dict), f"{where}: expected fields")
        for key, inner in value.items():
            expect(key in kind, f"{where}: there is no field {key}")
            check(inner, kind[key], f"{where}.{key}")
    elif kind in PLAIN:
        expect(isinstance(value, PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool)),
               f"{where}: expected {kind}, got {value!r}")
    elif kind.startswith("list["):
        expect(isinstance(value, list) and value, f"{where}: expected a list")
        for place, inner in enumerate(value):
            check(inner, kind[5:-1], f"{where}[{place}]")
    elif kind.startswith("dict("):
        expect(isinstance(value, dict), f"{where}: expected names and values")
        for key, inner in value.items():
            check(inner, kind[5:-1].split(", ")[1], f"{where}.{key}")
    elif kind == "object":  # a quantity, or a port by number or name
        expect(isinstance(value, (str, int)), f"{where}: expected a number or a name")
    else:
        model = getattr(client, kind)
        fields = {model.attribute_map[name]: of for name, of in model.openapi_types.items()}
        check(value, fields, where)
        names = {shown: name for name, shown in model.attribute_map.items()}
        try:  # its setters refuse what is required and missing
            model(**{names[key]: inner for key, inner in value.items()})
        except ValueError as error:
            raise Wrong(f"{where}: {error}") from error


def documents(path):
    with open(path, encoding="utf-8") as text:
        return list(yaml.safe_load_all(text))


def check_document(document, where):
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind in TYPES:
        check(document, TYPES[kind], where)
    else:
        expect(kind in OWN_TYPES, f"{where}: unknown kind {kind}")
        check(document,
              {"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": OWN_TYPES[kind]}, where)


def check_pod(template, where):
    """What the API takes and a cluster would not run as meant."""
    spec = template["spec"]
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    expect(spec["securityContext"].get("runAsNonRoot") is True and spec["securityContext"].get("runAsUser") == 1000,
           f"{where}: runs as another user than the image's")
    for container in spec["containers"]:
        mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
        expect(mounted == volumes, f"{where}: volumes {volumes}, mounted {mounted}")
        expect(re.fullmatch(r"[a-z.]+/argosy:\d+\.\d+\.\d+", container["image"]),
               f"{where}: image {container['image']}")


def templates(document):
    """(role, number of pods, template), in the order in which ranks are given."""
    spec = document["spec"]
    if document["kind"] == "Job":
        return [("", spec["completions"], spec["template"])]
    replicas = spec.get("pytorchReplicaSpecs") or spec.get("mpiReplicaSpecs") or {}
    return [(role.lower(), of["replicas"], of["template"]) for role, of in replicas.items()]


def check_indexed(job, service, where):
    spec, name = job["spec"], job["metadata"]["name"]
    pod = spec["template"]["spec"]
    args = dict(arg[2:].split("=", 1) for arg in pod["containers"][0]["args"] if re.match("--[a-z_]+=", arg))
    expect(spec.get("completionMode") == "Indexed", f"{where}: pods get no index")
    expect(spec["completions"] == spec["parallelism"] == int(args["nnodes"]), f"{where}: numbers of pods differ")
    expect(pod["subdomain"] == service["metadata"]["name"], f"{where}: the service gives these pods no names")
    expect(args["master"].split(":")[0] == f"{name}-0.{pod['subdomain']}", f"{where}: --master is not pod 0")
    expect(service["spec"].get("clusterIP") == "None", f"{where}: the service is not headless")
    expect(service["spec"]["selector"] == {"job-name": name}, f"{where}: the service selects other pods")


def lint(path):
    found = documents(path)
    for document in found:
        where = f"{path}: {document.get('kind')}"
        check_document(document, where)
        if document["kind"] in ("Service", "PersistentVolumeClaim"):
            continue
        for role, number, template in templates(document):
            check_pod(template, f"{where} {role}")
            expect(number >= 1, f"{where} {role}: no pod")
        if document["kind"] == "Job":
            check_indexed(document, found[0], where)


def operator_variables(document, role, index, number, old):
    """What the Job controller or the operator adds to the variables of a pod."""
    if document["kind"] == "Job":
        return {"JOB_COMPLETION_INDEX": index}
    if document["kind"] == "MPIJob":
        return {"K_MPI_JOB_ROLE": role} | ({} if role == "worker" else {
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true", "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
            "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
            "OMPI_MCA_orte_set_default_slots": document["spec"]["slotsPerWorker"],
            "NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""})
    rank = index + (role == "worker")
    master = document["metadata"]["name"] + "-master-0"
    if old:
        return {"PYTHONUNBUFFERED": 0, "MASTER_PORT": 23456, "MASTER_ADDR": master, "WORLD_SIZE": number, "RANK": rank}
    ranks = document["spec"]["nprocPerNode"]
    return {"PYTHONUNBUFFERED": 1, "MASTER_PORT": 23456, "PET_MASTER_PORT": 23456, "MASTER_ADDR": master,
            "PET_MASTER_ADDR": master, "WORLD_SIZE": number * int(ranks), "RANK": rank, "PET_NODE_RANK": rank,
            "PET_NPROC_PER_NODE": ranks, "PET_NNODES": number}


def pod_script(document, role, index, template, number, old):
    """A script that does what the container runtime would: mounts, variables, the user, the command."""
    name = "-".join(str(part) for part in (document["metadata"]["name"], role, index) if part != "")
    container = template["spec"]["containers"][0]
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    lines = ["#!/bin/sh -e"]
    runs = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "runs")
    home = os.path.dirname(runs)  # of the image's user, and its working directory
    for mount in container["volumeMounts"]:
        path = mount["mountPath"]
        if "persistentVolumeClaim" in volumes[mount["name"]]:
            lines.append(f'mkdir -p {path} && mount --bind "$SHARED" {path}')
        else:
            lines.append(f"mount -t tmpfs -o mode=1777 tmpfs {path}")
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": home, "HOSTNAME": name,
                 "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    for variable in container.get("env", []):
        variables[variable["name"]] = variable.get("value", "the secret that the test made")
    variables |= operator_variables(document, role, index, number, old)
    command = container.get("command", ["argosy"]) + container.get("args", [])
    security = template["spec"]["securityContext"]
    user = f"--reuid={security['runAsUser']} --regid={security['fsGroup']} --clear-groups"
    if "ALL" in container["securityContext"]["capabilities"]["drop"]:
        user += " --inh-caps=-all --bounding-set=-all"
    if container["securityContext"]["allowPrivilegeEscalation"] is False:
        user += " --no-new-privs"
    words = [f"{key}={value}" for key, value in variables.items()] + command
    lines.append(f"exec setpriv {user} env -i -C {home} {' '.join(shlex.quote(word) for word in words)}")
    return name, "\n".join(lines) + "\n"


def pods(path, folder, old):
    document = documents(path)[-1]
    number = sum(count for _, count, _ in templates(document))
    folder = pathlib.Path(folder)
    for role, count, template in templates(document):
        for index in range(count):
            # The MPI operator's launcher is a Job of one pod, whose host name has no number.
            name, script = pod_script(document, role, "" if role == "launcher" else index, template, number, old)
            (folder / name).write_text(script, encoding="utf-8")
            os.chmod(folder / name, 0o755)
            print(name)


if __name__ == "__main__":
    try:
        if sys.argv[1] == "lint":
            for file in sys.argv[2:]:
                lint(file)
        else:
            pods(sys.argv[2], sys.argv[3], "--old" in sys.argv[4:])
    except Wrong as wrong:
        sys.exit(str(wrong))
