import type { LinkProps } from "@tanstack/react-router";
import {
  Boxes,
  ChartColumn,
  Gauge,
  House,
  KeyRound,
  KeySquare,
  Layers,
  ListTree,
  type LucideIcon,
  Microscope,
  ScrollText,
  Server,
  Settings,
  ShieldCheck,
  UserRoundKey,
  Users,
  Waypoints,
} from "lucide-react";

interface Entry {
  readonly to: NonNullable<LinkProps["to"]>;
  readonly label: string;
  readonly icon: LucideIcon;
}

/** Pages in the order of the navigation. To add a page, add a line here, and add its route to router.tsx. */
export const NAVIGATION: readonly { readonly title: string; readonly entries: readonly Entry[] }[] = [
  {
    title: "Overview",
    entries: [{ to: "/", label: "Home", icon: House }],
  },
  {
    title: "Access",
    entries: [
      { to: "/root-keys", label: "Root keys", icon: KeySquare },
      { to: "/apis", label: "APIs", icon: Boxes },
      { to: "/keys", label: "Keys", icon: KeyRound },
      { to: "/identities", label: "Identities", icon: Users },
      { to: "/permissions", label: "Roles and permissions", icon: ShieldCheck },
      { to: "/ratelimits", label: "Rate limits", icon: Gauge },
    ],
  },
  {
    title: "Operation",
    entries: [
      { to: "/usage", label: "Usage", icon: ChartColumn },
      { to: "/requests", label: "Requests", icon: ListTree },
      { to: "/policies", label: "Policies and pods", icon: Waypoints },
      { to: "/explain", label: "Explain", icon: Microscope },
      { to: "/audit", label: "Audit log", icon: ScrollText },
    ],
  },
  {
    title: "Administration",
    entries: [
      { to: "/people", label: "People", icon: UserRoundKey },
      { to: "/settings", label: "Settings", icon: Settings },
      { to: "/workspaces", label: "Workspaces", icon: Layers },
      { to: "/installation", label: "Installation", icon: Server },
    ],
  },
];
