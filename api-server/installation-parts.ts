import type { Edge } from "../edge/edge.ts";

/** Details that only the code that starts the process knows. */
export interface InstallationDeps {
  readonly edge: Pick<Edge, "kind" | "describe" | "writer" | "source" | "events">;
  readonly isRelaying: () => boolean;
  /** Worst degradation first, as in `/readyz?verbose`. */
  readonly degradations: () => readonly { readonly reason: string; readonly means: string }[];
  /** Ids of the encryption keys of this process; the first one encrypts. */
  readonly encryptionKeyIds: readonly string[];
  readonly retentionDays: { readonly audit: number; readonly deleted: number };
  readonly region: string;
  /** Returns the certificate of the API, PEM. */
  readonly certificate: () => string | undefined;
  /** Returns how far the roll-up is behind; `undefined` if the analytics store has no roll-up. */
  readonly rollUpDepth: (() => Promise<{ readonly events: number; readonly ageMs: number }>) | undefined;
  readonly usageProblem: (() => Promise<string | undefined>) | undefined;
  readonly startedAt: number;
}
