import type { AnalyticsSetting } from "../../../api-server/domain/administration/analytics-settings.ts";
import { parseWhole } from "../../values.ts";

/** Reads the text of an option: a number of its unit, or `default`, which is stored as null. */
export function readAnalyticsSetting({ option, min, max, unit }: AnalyticsSetting, text: string): number | null {
  return text === "default" ? null : parseWhole(option, text, { min, max, or: "default" }) * unit;
}
