import { checkAudit } from "./audit.ts";
import type { Checker } from "./checker.ts";
import { checkCredits } from "./credits.ts";
import { checkEvents } from "./events.ts";
import { checkFreshness } from "./freshness.ts";
import { checkGoodKeys } from "./good-keys.ts";
import { checkKept } from "./kept.ts";
import { checkLimits } from "./limits.ts";
import { checkResponses } from "./responses.ts";
import { checkRevoked } from "./revoked.ts";
import { checkSweep } from "./sweep.ts";

/** By what each checks. */
export const JUDGES = {
  kept: checkKept,
  revoked: checkRevoked,
  "good keys": checkGoodKeys,
  limits: checkLimits,
  credits: checkCredits,
  audit: checkAudit,
  events: checkEvents,
  sweep: checkSweep,
  responds: checkResponses,
  freshness: checkFreshness,
} as const satisfies Record<string, Checker>;
