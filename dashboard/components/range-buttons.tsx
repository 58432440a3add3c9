import type { ReactNode } from "react";
import { PRESET_NAMES, type Preset, type Range, wordsOfPreset } from "../usage/buckets.ts";
import { Button } from "./button.tsx";

/** Buttons for the preset time ranges. */
export function RangeButtons({ range, onChange }: { range: Range; onChange: (range: Preset) => void }): ReactNode {
  return PRESET_NAMES.map((preset) => (
    <Button key={preset} aria-pressed={range === preset} title={wordsOfPreset(preset)} onClick={() => onChange(preset)}>
      {preset}
    </Button>
  ));
}
