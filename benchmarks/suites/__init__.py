"""The suites of compare.py, by name."""

from suites import collectives, ddp, epoch, fit, input, launch, layout, memory, ops, optim, parallel, ps, python, rpc, scaling, traffic, virtual

SUITES = {
    "ddp": ddp.cases,
    "collectives": collectives.cases,
    "optim": optim.cases,
    "input": input.cases,
    "launch": launch.cases,
    "epoch": epoch.cases,
    "fit": fit.cases,
    "memory": memory.cases,
    "layout": layout.cases,
    "ops": ops.cases,
    "scaling": scaling.cases,
    "parallel": parallel.cases,
    "ps": ps.cases,
    "python": python.cases,
    "rpc": rpc.cases,
    "traffic": traffic.cases,
    "virtual": virtual.cases,
}
