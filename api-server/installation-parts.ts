import type { Edge } from "../edge/edge.ts";

/** What only the process that put the parts together knows. */
export interface InstallationParts {
  readonly edge: Pick<Edge, "kind" | "describe" | "writer" | "source" | "events">;
  readonly isRelaying: () => boolean;
  /** The worst first, as `/readyz?verbose` has them. */
  readonly degradations: () => readonly { readonly reason: string; readonly means: string }[];
  /** The encryption keys of this process: the first encrypts. */
  readonly encryptionKeyIds: readonly string[];
  readonly retentionDays: { readonly audit: number; readonly deleted: number };
  readonly region: string;
  /** The certificate that the API is served with, PEM. */
  readonly certificate: () => string | undefined;
  /** How far the store of usage has added up its events; undefined where there is no roll-up. */
  readonly rollUpDepth: (() => Promise<{ readonly events: number; readonly ageMs: number }>) | undefined;
  readonly usageTrouble: (() => Promise<string | undefined>) | undefined;
  readonly startedAt: number;
}
