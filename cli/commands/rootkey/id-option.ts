/** For the commands that change one root key. */
export const id = { type: "string", placeholder: "ID", help: "id of the root key, rk_…", required: true } as const;
