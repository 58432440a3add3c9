import type { ReadStream } from "node:tty";
import type { Input } from "./command.ts";

/* Reads secrets from standard input: piped, or typed without echo. */

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const LINE_END = /[\r\n]/;
const ERASE = /[\u007f\b]/;
const LINE_LENGTH_MAX = 4096;

/** Reads from `input` and writes prompts to `prompts`, so that standard output has only the result. */
export const inputOf = (input: ReadStream, prompts: NodeJS.WritableStream): Input => ({
  get isTerminal() {
    return input.isTTY === true;
  },
  async read(bytesMax) {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of input) {
      chunks.push(chunk as Buffer);
      bytes += (chunk as Buffer).length;
      if (bytes > bytesMax) throw new Error(`standard input has more than ${bytesMax} bytes`);
    }
    return Buffer.concat(chunks).toString("utf8");
  },
  ask: (prompt) =>
    new Promise((resolve, reject) => {
      let line = "";
      const end = (settle: () => void): void => {
        input.off("data", take);
        input.setRawMode(false);
        input.pause();
        prompts.write("\n");
        settle();
      };
      // Handles the editing keys, because the terminal does not edit lines in raw mode.
      const take = (chunk: Buffer): void => {
        for (const character of chunk.toString("utf8")) {
          if (LINE_END.test(character) || character === CTRL_D) {
            end(() => resolve(line));
            return;
          }
          if (character === CTRL_C) {
            end(() => reject(new Error("given up")));
            return;
          }
          if (ERASE.test(character)) line = line.slice(0, -1);
          else if (line.length < LINE_LENGTH_MAX) line += character;
        }
      };
      prompts.write(prompt);
      input.setRawMode(true);
      input.on("data", take);
      input.resume();
    }),
});
