"""A cluster of Sail on one machine, each worker a process of its own.

Sail starts such workers through Kubernetes alone: its local cluster has threads. `Pods` stands in for the part of
Kubernetes' interface that Sail uses, and starts a process for each pod.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

LOOPBACK = "127.0.0.1"


class Pods(ThreadingHTTPServer):
    """Pods that are processes on the loopback interface."""

    def __init__(self) -> None:
        super().__init__((LOOPBACK, 0), Requests)
        self.workers: list[subprocess.Popen[bytes]] = []
        Thread(target=self.serve_forever, daemon=True).start()

    def configuration(self, path: Path) -> Path:
        """Writes the file that clients of Kubernetes read."""
        context = {"cluster": "here", "user": "me", "namespace": "default"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": context}],
            "clusters": [{"name": "here", "cluster": {"server": f"http://{LOOPBACK}:{self.server_port}"}}],
            "users": [{"name": "me", "user": {}}],
        }
        path.write_text(json.dumps(config))
        return path

    def launch(self, pod: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        # The one without a value is the pod's own address.
        given = {variable["name"]: variable.get("value", LOOPBACK) for variable in container["env"]}
        given["SAIL_CLUSTER__WORKER_LISTEN_HOST"] = LOOPBACK
        command = [sys.executable, "-m", "pysail", *container["args"]]
        self.workers.append(subprocess.Popen(command, env=os.environ | given))

    def terminate(self) -> None:
        for worker in self.workers:
            worker.terminate()

    def stop(self) -> None:
        self.terminate()
        for worker in self.workers:
            worker.wait(30)


class Requests(BaseHTTPRequestHandler):
    server: Pods

    def do_POST(self) -> None:
        pod = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.launch(pod)
        self.answer(201, pod)

    def do_DELETE(self) -> None:
        self.server.terminate()
        self.answer(200, {"apiVersion": "v1", "kind": "Status", "status": "Success"})

    def answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Cluster:
    """Sail's server and two workers, in three processes."""

    def __init__(self, directory: Path, workers: int = 2, tasks: int = 8) -> None:
        self.pods = Pods()
        with socket.socket() as free:
            free.bind((LOOPBACK, 0))
            port = free.getsockname()[1]
        settings = {
            "KUBECONFIG": str(self.pods.configuration(directory / "kubernetes.json")),
            "RUST_LOG": "warn",
            "SAIL_MODE": "kubernetes-cluster",
            "SAIL_CLUSTER__WORKER_INITIAL_COUNT": str(workers),
            "SAIL_CLUSTER__WORKER_MAX_COUNT": str(workers),
            "SAIL_CLUSTER__WORKER_TASK_SLOTS": str(tasks // workers),
            "SAIL_EXECUTION__DEFAULT_PARALLELISM": str(tasks),
        }
        command = [sys.executable, "-m", "pysail", "spark", "server", "--port", str(port)]
        self.server = subprocess.Popen(command, env=os.environ | settings)
        self.address = f"sc://{LOOPBACK}:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((LOOPBACK, port)).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.server.poll() is not None:
                    self.stop()
                    raise
            time.sleep(0.05)

    def stop(self) -> None:
        self.server.terminate()
        self.server.wait(30)
        self.pods.stop()
        self.pods.shutdown()
        self.pods.server_close()
