/** Timeout for a request head, and for a TLS handshake, for which Node's default is two minutes. */
export const HEAD_MS_MAX = 10_000;
/** Timeout for a client to read bytes of a pending response. */
export const READ_MS_MAX = 120_000;
