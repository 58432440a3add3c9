import { unpackedProgram } from "./debian-packages.ts";
import { findBinary, findPart } from "./find.ts";

const NAMES = ["valkey-server"];

/** Finds Valkey, which Debian 12 has in its backports. Throws `MissingPart`. */
export const valkeyBinary = (): Promise<string> =>
  findPart("Valkey", "install valkey-server (8 or newer)", [
    { name: "the PATH", attempt: () => findBinary(NAMES) },
    { name: "Debian's packages", attempt: () => unpackedProgram({ packages: NAMES, backports: true }, NAMES) },
  ]);
