import { KeyView } from "../../core/verification/key-view.ts";
import type { LineSink } from "../events/contract.ts";
import { type Happening, subjectJson, verificationLine } from "../events/verification-line.ts";

export interface RecordingDeps {
  readonly events: LineSink;
  /** Result of `deciderJson` for this process. */
  readonly decidedBy: string;
}

/** Queues the event of a verification. Called for every outcome, if the key exists. */
export function recordVerification({ events, decidedBy }: RecordingDeps, view: KeyView, happening: Happening): void {
  events.addLine(view.key.workspaceId, verificationLine(subjectOf(view), decidedBy, happening));
}

/** JSON that describes the key in events. It is cached with the key, because serializing it costs more than the decision. */
const subjectOf = KeyView.remember(({ key, identity }) =>
  subjectJson({
    workspaceId: key.workspaceId,
    keySpaceId: key.keySpaceId,
    apiId: key.apiId,
    keyId: key.keyId,
    identityId: identity?.id,
    externalId: identity?.externalId,
  }),
);
