import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { useToast } from "./toast.tsx";
import "./button.css";

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "type" | "disabled"> {
  readonly kind?: "plain" | "main" | "danger" | "quiet";
  readonly type?: "button" | "submit";
  /** Reason why the button is disabled. A disabled button stays in the Tab order, and shows the reason when it is pressed. */
  readonly unusable?: string | undefined;
  /** Called when the disabled button is pressed; default: shows the reason as a toast. */
  readonly onUnusable?: ((reason: string) => void) | undefined;
  /** Whether the button's action is still running. Clicks are ignored until the action ends. */
  readonly isBusy?: boolean;
  readonly ref?: Ref<HTMLButtonElement>;
}

export function Button({
  kind = "plain",
  type = "button",
  unusable,
  onUnusable,
  isBusy = false,
  className = "",
  onClick,
  title,
  children,
  ...rest
}: ButtonProps): ReactNode {
  const toast = useToast();
  const isOff = unusable !== undefined || isBusy;
  return (
    <button
      {...rest}
      type={type}
      className={`button button-${kind} ${className}`}
      aria-disabled={isOff || undefined}
      aria-busy={isBusy || undefined}
      title={unusable ?? title}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onClick?.(event);
        if (unusable !== undefined) (onUnusable ?? toast)(unusable);
      }}
    >
      {children}
    </button>
  );
}
