import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from "react";
import "./toast.css";

const SHOWN_MS = 6000;

const ToastContext = createContext<(text: string) => void>(() => undefined);

/**
 * Returns a function that shows a success message such as "The key is disabled." Errors are shown where the action was started instead, and
 * stay visible.
 */
export const useToast = (): ((text: string) => void) => useContext(ToastContext);

/** Returns a function for a dialog that shows a success message and closes the dialog. */
export function useDone(onClose: () => void): (text: string) => void {
  const toast = useToast();
  return (text) => {
    toast(text);
    onClose();
  };
}

export function Toasts({ children }: { children: ReactNode }): ReactNode {
  const [toasts, setToasts] = useState<readonly { readonly id: number; readonly text: string }[]>([]);
  const lastId = useRef(0);
  const show = useCallback((text: string) => {
    const id = ++lastId.current;
    setToasts((shown) => [...shown, { id, text }]);
    setTimeout(() => setToasts((shown) => shown.filter((toast) => toast.id !== id)), SHOWN_MS);
  }, []);
  return (
    <ToastContext value={show}>
      {children}
      <div className="toasts" role="status">
        {toasts.map(({ id, text }) => (
          <p key={id} className="toast">
            {text}
          </p>
        ))}
      </div>
    </ToastContext>
  );
}
