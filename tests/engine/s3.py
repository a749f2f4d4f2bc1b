"""A real S3 server on the loopback (moto), and a proxy before it that breaks on demand."""

import contextlib
import http.client
import os
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = "fabricarlo-tests"


class Proxy(ThreadingHTTPServer):
    """Passes requests on, unless `fault` says what to do with one instead.

    fault(number, method, path) gives None, a status to answer, ("sleep", s) to answer late, or
    "drop" to close the connection: before the server sees the request, or after it has, for
    "lose", so that only the answer is lost.
    """

    daemon_threads = True

    def __init__(self, server: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = server
        self.fault: Callable[[int, str, str], object] = lambda *_: None
        self.done: Counter[object] = Counter()
        self.number = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address) -> None:
        pass  # a client that went away


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.lock:
            self.server.number += 1
            fault = self.server.fault(self.server.number, self.command, self.path)
            if fault is not None:
                self.server.done[fault] += 1
        if isinstance(fault, int):
            self._answer(fault, [], b"<Error><Code>SlowDown</Code></Error>")
            return
        if fault == "drop":
            self.close_connection = True
            return
        if isinstance(fault, tuple):
            time.sleep(fault[1])
        status, headers, content = self._passed_on(body)
        if fault == "lose":
            self.close_connection = True
            return
        self._answer(status, headers, content)

    def _passed_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection(*self.server.upstream, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() != "transfer-encoding"}
        upstream.request(self.command, self.path, body or None, headers)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        return answer.status, answer.getheaders(), content

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        length = str(len(content))
        for key, value in headers:
            if key.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif key.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(key, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

    def log_message(self, format, *arguments) -> None:
        pass


@contextlib.contextmanager
def serving() -> Iterator[Proxy]:
    """The server and its proxy, and the environment that leads there."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    proxy = Proxy(server.get_host_and_port())
    mine = environment(proxy.url)
    before = {k: os.environ.get(k) for k in mine}
    os.environ.update(mine)
    try:
        made = urllib.request.Request(f"{proxy.url}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made).close()
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        server.stop()
        for key, value in before.items():
            os.environ.pop(key, None) if value is None else os.environ.update({key: value})


def environment(url: str) -> dict[str, str]:
    """What a user sets for an S3-compatible store."""
    return {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": url,
        "AWS_ALLOW_HTTP": "true",
    }
