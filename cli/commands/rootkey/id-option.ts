/** Of the commands that act on one root key. */
export const id = { type: "string", placeholder: "ID", help: "id of the root key, rk_…", required: true } as const;
