/** Waits for `work` up to `ms` milliseconds, and ignores its result. */
export async function atMost(ms: number, work: Promise<unknown> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([tooLate, Promise.resolve(work).catch(() => undefined)]);
  clearTimeout(timer);
}
