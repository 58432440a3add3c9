/*
 * What of the head of an app's answer a client gets to see. The app is free to answer as it likes; what cannot be written as
 * HTTP/1.1 is put right where that loses nothing, and refused where it would.
 */

/** Bytes beyond ASCII are allowed too (RFC 9112, 4), but client libraries disagree about which characters they are. */
const WRITABLE = /^[\t\x20-\x7e]+$/;

/**
 * The reason phrase as it may be written; undefined where the standard one is to be written instead. Phrases have no meaning
 * (RFC 9110, 15.1), so that an answer is not refused for one that cannot be written.
 */
export const writableReason = (reason: string | undefined): string | undefined =>
  reason !== undefined && WRITABLE.test(reason) ? reason : undefined;

/** Three digits, and neither below 200, where an answer is not final, nor 0. Those past 599 are left to app and client. */
export const isFinalStatus = (status: number): boolean => status >= 200 && status <= 999;
