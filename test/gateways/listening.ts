import { connect } from "node:net";
import type { RunningProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

/** Waits until a process listens on the port of 127.0.0.1. Throws with the program's output if it exits first. */
export async function waitForPort(port: number, child: RunningProcess): Promise<void> {
  const ended = child.exited.then(() => {
    throw new Error(`it ended: ${child.stderr()}${child.stdout()}`);
  });
  await Promise.race([waitFor(`port ${port}`, () => isOpen(port), { deadlineMs: 60_000 }), ended]);
}

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
