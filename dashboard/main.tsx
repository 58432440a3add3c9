import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/print.css";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createQueryClient } from "./api/query-client.ts";
import { createDashboardRouter } from "./router.tsx";

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");

createRoot(root).render(
  <StrictMode>
    {/* The Content-Security-Policy forbids style elements, so base.css contains the styles that the library would add. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={createQueryClient()}>
        <RouterProvider router={createDashboardRouter()} />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
