export interface SideBySide<Subject> {
  /** Starts the work, unless the last one of this subject is still under way. `work` must not throw. */
  start(subject: Subject, work: () => Promise<void>): void;
  /** Resolves when what was started is done. */
  done(): Promise<void>;
}

/** Work for several subjects, one piece at a time for each: a subject that takes long delays no other. */
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
