import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from "react";
import "./toast.css";

const SHOWN_MS = 6000;

const ToastContext = createContext<(text: string) => void>(() => undefined);

/** Returns what says that something was done: "The key is disabled." What failed is said where it was tried, and stays. */
export const useToast = (): ((text: string) => void) => useContext(ToastContext);

/** For a window: says that what it was opened for is done, and closes it. */
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
