import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

type Done = (error?: Error | null) => void;

/**
 * A connection as Node's `http` server sees it: reading from it returns the bytes of single requests, and writing to it writes to the
 * socket. The socket itself stays with the direct front, which can therefore read the next request. Timeouts that Node sets apply to the
 * socket.
 */
export class NodeStream extends Duplex {
  bytesRead = 0;
  readonly encrypted: boolean;

  readonly #socket: Socket;
  readonly #onDestroy: () => void;

  /** `onDestroy` is called when Node or `destroy` has destroyed this stream; the socket stays open. */
  constructor(socket: Socket, onDestroy: () => void) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#onDestroy = onDestroy;
    this.encrypted = (socket as Partial<TLSSocket>).encrypted === true;
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.#socket.remotePort;
  }

  get localPort(): number | undefined {
    return this.#socket.localPort;
  }

  /** Passes bytes from the client to Node. The socket pauses until Node reads them. */
  receive(bytes: Buffer): void {
    this.bytesRead += bytes.length;
    if (!this.push(bytes)) this.#socket.pause();
  }

  setTimeout(ms: number): this {
    this.#socket.setTimeout(ms);
    return this;
  }

  destroySoon(): void {
    this.#socket.destroySoon();
  }

  override _read(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: Done): void {
    this.#socket.write(chunk, encoding, done);
  }

  override _writev(chunks: Array<{ chunk: Buffer; encoding: BufferEncoding }>, done: Done): void {
    this.#socket.cork();
    for (const [index, { chunk, encoding }] of chunks.entries()) {
      this.#socket.write(chunk, encoding, index === chunks.length - 1 ? done : undefined);
    }
    this.#socket.uncork();
  }

  override _final(done: Done): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#onDestroy();
    done(error);
  }
}
