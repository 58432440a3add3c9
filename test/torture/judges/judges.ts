import { judgeAnswers } from "./answers.ts";
import { judgeAudit } from "./audit.ts";
import { judgeCredits } from "./credits.ts";
import { judgeEvents } from "./events.ts";
import { judgeFreshness } from "./freshness.ts";
import { judgeGoodKeys } from "./good-keys.ts";
import type { Judge } from "./judge.ts";
import { judgeKept } from "./kept.ts";
import { judgeLimits } from "./limits.ts";
import { judgeRevoked } from "./revoked.ts";
import { judgeSweep } from "./sweep.ts";

/** By what each checks. */
export const JUDGES = {
  kept: judgeKept,
  revoked: judgeRevoked,
  "good keys": judgeGoodKeys,
  limits: judgeLimits,
  credits: judgeCredits,
  audit: judgeAudit,
  events: judgeEvents,
  sweep: judgeSweep,
  answers: judgeAnswers,
  freshness: judgeFreshness,
} as const satisfies Record<string, Judge>;
