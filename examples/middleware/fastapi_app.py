"""FastAPI app with a dependency that verifies the key of a request. Requires fastapi, uvicorn, and postern.py of examples/apps/python."""

import os
import socket
from collections.abc import Callable
from typing import Annotated

import postern
import uvicorn
from fastapi import Depends, FastAPI, Header
from fastapi.requests import Request
from fastapi.responses import JSONResponse


def needs_key(asked: dict) -> Callable[..., postern.Caller]:
    """Returns a dependency that accepts a request if its key meets the requirements `asked`, and returns the caller."""

    # This function is not `async`, so that FastAPI runs it in a thread and a slow verification delays no other request.
    def verify(authorization: Annotated[str | None, Header()] = None) -> postern.Caller:
        return postern.verify(authorization, asked)

    return verify


app = FastAPI()


@app.exception_handler(postern.Refusal)
def refuse(_: Request, refusal: postern.Refusal) -> JSONResponse:
    return JSONResponse({"error": refusal.error}, refusal.status, refusal.headers)


@app.get("/reports")
def reports(caller: Annotated[postern.Caller, Depends(needs_key(postern.REPORTS))]) -> dict:
    who = {"keyId": caller.key_id, "externalId": caller.external_id, "plan": caller.meta.get("plan")}
    return {"reports": [], "for": who}


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "3001")))) as listener:
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
