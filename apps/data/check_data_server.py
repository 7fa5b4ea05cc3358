#!/usr/bin/env python3
"""check_data_server.py FOLDER LOG: serves FOLDER on a free port of the loopback, prints the port and
writes a line for each request to LOG. A path that begins with /slow/ comes in ten pieces with pauses,
/drop/ ends in the middle unless a range is asked for, /corrupt/ has its last byte changed."""
import http.server
import os
import sys
import time

FOLDER, LOG = sys.argv[1:3]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(LOG, "a") as log:
            log.write(f"{self.path} {self.headers.get('Range', '-')}\n")
        mode, _, path = self.path.lstrip("/").partition("/")
        try:
            with open(os.path.join(FOLDER, path), "rb") as file:
                body = file.read()
        except OSError:
            self.send_error(404)
            return
        if mode == "corrupt":
            body = body[:-1] + bytes([body[-1] ^ 1])
        begin = 0
        if "Range" in self.headers:
            begin = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body) - begin))
        self.end_headers()
        rest = body[begin:]
        if mode == "drop" and begin == 0:
            rest = rest[: len(rest) // 2]
        step = max(1, len(rest) // 10) if mode == "slow" else len(rest)
        try:
            for at in range(0, len(rest), step):
                self.wfile.write(rest[at : at + step])
                self.wfile.flush()
                if mode == "slow":
                    time.sleep(0.15)
        except OSError:
            pass  # the client was killed, as one is here on purpose

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
