import type { Logger } from "pino";
import type { PodReport, PodReports } from "../edge/pods/contract.ts";

/**
 * Says what this pod enforces every `everyMs`, and at once when `reportNow` is called. A report that cannot be sent is
 * not repeated: the next one is newer. A line is logged when reporting starts to fail, and when it works again.
 */
export function startPodReports(options: {
  pods: PodReports;
  /** undefined while there is nothing to say. */
  read: () => PodReport | undefined;
  everyMs: number;
  logger: Logger;
}): { reportNow(): void; stop(): void } {
  const { pods, read, everyMs, logger } = options;
  let isFailing = false;
  let isStopped = false;

  async function send(): Promise<void> {
    try {
      const report = read();
      if (report === undefined || isStopped) return;
      await pods.report(report);
      if (isFailing) logger.info("pod reports reach the shared store again");
      isFailing = false;
    } catch (error) {
      if (!isFailing && !isStopped) logger.warn({ err: error }, "the pod cannot report what it enforces");
      isFailing = true;
    }
  }

  const timer = setInterval(() => void send(), everyMs);
  timer.unref();
  return {
    reportNow: () => void send(),
    stop() {
      isStopped = true;
      clearInterval(timer);
    },
  };
}
