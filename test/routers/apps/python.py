"""HTTP routers written in Python. Prints a line `name port` for each. A guarded path responds `guarded`, every other one `other`.

Argument: the guarded paths as JSON.
"""

import asyncio
import json
import re
import socket
import sys
import threading

import bottle
import django
import tornado.httpserver
import tornado.web
import uvicorn
import waitress
from aiohttp import web
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import re_path
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from flask import Flask

paths = json.loads(sys.argv[1])
METHODS = ["GET"]


def bound():
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def in_thread(name, run):
    listener = bound()
    threading.Thread(target=run, args=(listener,), daemon=True).start()
    print(name, listener.getsockname()[1], flush=True)


def wsgi(app):
    return lambda listener: waitress.serve(app, sockets=[listener], threads=2, _quiet=True)


fastapi_app = FastAPI()


async def fastapi_guarded():
    return PlainTextResponse("guarded")


async def fastapi_other(rest: str):
    return PlainTextResponse("other")


for path in paths:
    if "{" not in path:
        fastapi_app.add_api_route(path, fastapi_guarded)
fastapi_app.add_api_route("/{rest:path}", fastapi_other)
in_thread("fastapi", lambda listener: uvicorn.Server(uvicorn.Config(fastapi_app, log_level="error")).run([listener]))

flask_app = Flask("flask", static_folder=None)
for index, path in enumerate(paths):
    if "<" not in path:
        flask_app.add_url_rule(path, f"guarded{index}", lambda: "guarded")
flask_app.register_error_handler(404, lambda _error: ("other", 200))
in_thread("flask", wsgi(flask_app))

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", APPEND_SLASH=True)
urlpatterns = [re_path("^" + re.escape(path[1:]) + "$", lambda _request: HttpResponse("guarded")) for path in paths]
urlpatterns.append(re_path("", lambda _request: HttpResponse("other")))
django.setup()
in_thread("django", wsgi(get_wsgi_application()))

bottle_app = bottle.Bottle()
for path in paths:
    bottle_app.route(re.sub(r"[\\:<]", r"\\\g<0>", path), METHODS, lambda: "guarded")
bottle_app.error(404)(lambda _error: "other")
in_thread("bottle", wsgi(bottle_app))

class TornadoGuarded(tornado.web.RequestHandler):
    def get(self):
        self.write("guarded")


async def asyncio_servers():
    aiohttp_app = web.Application()

    async def guarded(_request):
        return web.Response(text="guarded")

    async def other(_request):
        return web.Response(text="other")

    for path in paths:
        if "{" not in path:
            aiohttp_app.router.add_get(path, guarded)
    aiohttp_app.router.add_route("*", "/{rest:.*}", other)
    runner = web.AppRunner(aiohttp_app)
    await runner.setup()
    listener = bound()
    await web.SockSite(runner, listener).start()
    print("aiohttp", listener.getsockname()[1], flush=True)

    # Tornado matches its patterns against the undecoded path.
    quoted = [re.escape(re.sub(r"[^\w.~!$&'()*+,;=:@/-]", lambda one: "".join(f"%{b:02X}" for b in one[0].encode()), path, flags=re.A)) for path in paths]
    tornado_app = tornado.web.Application([(path, TornadoGuarded) for path in quoted])
    server = tornado.httpserver.HTTPServer(tornado_app)
    listener = bound()
    listener.setblocking(False)
    server.add_socket(listener)
    print("tornado", listener.getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(asyncio_servers())
