export interface SideBySide<Subject> {
  /** Starts work for a subject, unless its previous work is still in progress. `work` must not throw. */
  start(subject: Subject, work: () => Promise<void>): void;
  /** Resolves when all started work has ended. */
  done(): Promise<void>;
}

/** Runs work for several subjects concurrently, one at a time per subject, so that a slow subject does not delay the others. */
export function createSideBySide<Subject>(): SideBySide<Subject> {
  const underWay = new Map<Subject, Promise<void>>();
  return {
    start: (subject, work) => {
      if (underWay.has(subject)) return;
      underWay.set(
        subject,
        work().finally(() => underWay.delete(subject)),
      );
    },
    done: async () => {
      await Promise.all(underWay.values());
    },
  };
}
