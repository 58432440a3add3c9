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

/** Dependencies of the handlers: those of the use cases, and a few that single handlers use. `start` or a test builds them once. */
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
   * Whether changes of the workspace currently take longer to reach the pods than `PROPAGATION_BOUND_MS`; responses to changes then report
   * this.
   */
  readonly propagationDelayed: (workspaceId: string) => boolean;
}
