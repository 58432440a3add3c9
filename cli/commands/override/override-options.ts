export const namespace = {
  type: "string",
  placeholder: "NAMESPACE",
  help: "the rate-limit namespace: its id, rlns_…, or its name",
  required: true,
} as const;

export const identifier = {
  type: "string",
  placeholder: "TEXT",
  help: "whose limit it is; a * in it stands for any characters",
  required: true,
} as const;
