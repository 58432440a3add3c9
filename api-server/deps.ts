import type { EdgeCounters } from "../edge/edge.ts";
import type {
  CreditsDeps,
  InstallationDeps,
  LimitDeps,
  PeopleDeps,
  PodDeps,
  UsageDeps,
  VaultDeps,
  VerificationDeps,
} from "./domain/deps.ts";
import type { KeyOwners } from "./keys/key-owners.ts";
import type { RootKeyUsage } from "./keys/root-key-usage.ts";

/** Dependencies of the handlers: those of the use cases, and a few that only one handler uses. Built once, by `start` or by a test. */
export interface Deps
  extends CreditsDeps,
    LimitDeps,
    UsageDeps,
    VaultDeps,
    VerificationDeps,
    PodDeps,
    PeopleDeps,
    InstallationDeps {
  readonly analytics: UsageDeps["analytics"];
  readonly projection: LimitDeps["projection"];
  readonly keyOwners: KeyOwners;
  /** Evaluates limits without counting, for `admin.explainVerification`. */
  readonly peekLimits: EdgeCounters["peek"];
  /** Records which permissions root keys use. */
  readonly rootKeyUsage: RootKeyUsage;
  /** URL prefix of `error.type`, before `/errors/<kind>`. */
  readonly docsUrl: string;
  /**
   * Returns whether changes in the workspace currently take longer than `PROPAGATION_BOUND_MS` to reach the pods. Responses to changes then
   * report this.
   */
  readonly propagationDelayed: (workspaceId: string) => boolean;
}
