/** Maximum requests per minute, far above the capacity of one installation. */
export const QUOTA_MAX = 1_000_000_000;
