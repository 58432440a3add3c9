/** The most requests per minute, far above what one installation serves. */
export const QUOTA_MAX = 1_000_000_000;
