import { type Line, openLine } from "./line.ts";

/** When to break a connection: before the n-th client message reaches the server, or after it, so that only the reply is lost. */
export interface Break {
  readonly message: number;
  readonly when: "before" | "after";
}

/** A TCP proxy that breaks connections at a given message, as when the client process dies at that point. */
export interface BreakingLine extends Line {
  /** Counts messages from now on; `undefined` lets all pass. */
  arm(at: Break | undefined): void;
}

/** `url` is the URL of the proxied server; only its address is replaced. */
export async function openBreakingLine(url: string): Promise<BreakingLine> {
  let armed: Break | undefined;
  let messages = 0;
  const line = await openLine(url, (near, reach) => {
    const far = reach();
    let isOver = false;
    near.on("data", (bytes: Buffer) => {
      messages += 1;
      if (armed?.message !== messages) return void far.write(bytes);
      // The server executes what it has received and then detects the closed connection.
      isOver = true;
      if (armed.when === "after") far.end(bytes);
      else far.destroy();
      near.destroy();
    });
    far.on("data", (bytes: Buffer) => void near.write(bytes));
    near.on("close", () => {
      if (!isOver) far.destroy();
    });
    far.on("close", () => near.destroy());
  });
  return {
    ...line,
    arm: (at) => {
      armed = at;
      messages = 0;
    },
  };
}
