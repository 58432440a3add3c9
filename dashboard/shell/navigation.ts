import type { LinkProps } from "@tanstack/react-router";

interface Entry {
  readonly to: NonNullable<LinkProps["to"]>;
  readonly label: string;
}

/** Pages in the order of the navigation. To add a page, add a line here, and add its route to router.tsx. */
export const NAVIGATION: readonly { readonly title: string; readonly entries: readonly Entry[] }[] = [
  {
    title: "Access",
    entries: [
      { to: "/root-keys", label: "Root keys" },
      { to: "/apis", label: "APIs" },
      { to: "/keys", label: "Keys" },
      { to: "/identities", label: "Identities" },
      { to: "/permissions", label: "Roles and permissions" },
      { to: "/ratelimits", label: "Rate limits" },
    ],
  },
  {
    title: "Operation",
    entries: [
      { to: "/usage", label: "Usage" },
      { to: "/policies", label: "Policies and pods" },
      { to: "/explain", label: "Explain" },
      { to: "/audit", label: "Audit log" },
    ],
  },
  {
    title: "Administration",
    entries: [
      { to: "/settings", label: "Settings" },
      { to: "/workspaces", label: "Workspaces" },
      { to: "/installation", label: "Installation" },
    ],
  },
];
