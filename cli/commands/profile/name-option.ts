export const name = { type: "string", placeholder: "NAME", help: "name of the profile", required: true } as const;
