import type { Logger } from "pino";
import { LogThrottle } from "../edge/log-throttle.ts";

const REFUSED = "Redis refuses our user: see its name, its password and its rights there";
const AWAY = "no connection to Redis; trying again";

/** Whether Redis does not know the user, or not with this password. */
const isUserRefused = ({ message }: Error): boolean => /WRONGPASS|NOAUTH|NOPERM/.test(message);

/** Logs why there is no connection: once in five seconds for each of the two kinds of reasons. Passwords are in neither of them. */
export function logRedisErrors(log: Pick<Logger, "warn">): (error: Error) => void {
  const throttle = new LogThrottle();
  return (error) => {
    const message = isUserRefused(error) ? REFUSED : AWAY;
    const times = throttle.note(message);
    if (times !== undefined) log.warn({ reason: error.message, times }, message);
  };
}
