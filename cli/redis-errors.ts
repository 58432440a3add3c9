import type { Logger } from "pino";
import { LogThrottle } from "../edge/log-throttle.ts";

const REFUSED = "Redis rejected the user; check its name, password and ACL";
const AWAY = "no connection to Redis; retrying";

/** Returns whether Redis rejected the user or the password. */
const isUserRefused = ({ message }: Error): boolean => /WRONGPASS|NOAUTH|NOPERM/.test(message);

/**
 * Logs Redis connection errors without passwords. A rejected user and an unreachable Redis are each logged at most once in five seconds.
 */
export function logRedisErrors(log: Pick<Logger, "warn">): (error: Error) => void {
  const throttle = new LogThrottle();
  return (error) => {
    const message = isUserRefused(error) ? REFUSED : AWAY;
    const times = throttle.note(message);
    if (times !== undefined) log.warn({ reason: error.message, times }, message);
  };
}
