import type { FastifyInstance } from "fastify";
import type { Documents } from "./docs-page.ts";
import type { ErrorForm, ErrorSender } from "./errors.ts";
import type { Served } from "./served.ts";

/** An older version of the API that can be served in addition to v2, with its own paths and error format. */
export interface OldApi extends ErrorForm {
  /** Whether this version is served; if false, each call returns 410. */
  readonly isServed: boolean;
  readonly procedures: readonly Served[];
  readonly documents: Documents;
  /** Registers the routes of this version that are not procedures. */
  readonly register: (app: FastifyInstance, sendError: ErrorSender) => void;
  /** Waits for pending writes. */
  readonly settle: () => Promise<void>;
}
