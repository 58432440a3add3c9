import { Toast as Base } from "@base-ui/react/toast";
import type { ReactNode } from "react";
import "./toast.css";

const SHOWN_MS = 6000;

/**
 * Returns a function that shows a message for a few seconds: a success such as "The key is disabled.", or the reason why a button is
 * disabled. Errors are shown where the action was started instead, and stay visible.
 */
export function useToast(): (text: string) => void {
  const { add } = Base.useToastManager();
  return (text) => void add({ description: text });
}

/** Returns a function that shows a success message and closes the dialog. */
export function useDone(onClose: () => void): (text: string) => void {
  const toast = useToast();
  return (text) => {
    toast(text);
    onClose();
  };
}

export function Toasts({ children }: { children: ReactNode }): ReactNode {
  return (
    <Base.Provider timeout={SHOWN_MS}>
      {children}
      <Base.Portal>
        <Base.Viewport className="toasts">
          <ToastList />
        </Base.Viewport>
      </Base.Portal>
    </Base.Provider>
  );
}

function ToastList(): ReactNode {
  const { toasts } = Base.useToastManager();
  return toasts.map((toast) => (
    // Replaces the library's default role `dialog`, because a toast has no controls.
    <Base.Root key={toast.id} toast={toast} className="toast" role="group">
      <Base.Description />
    </Base.Root>
  ));
}
