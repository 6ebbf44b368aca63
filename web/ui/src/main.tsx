import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { client } from "./api/queries";
import { App } from "./App";
import { reloadOnce } from "./shell/reloadOnce";
import { applyTheme } from "./shell/theme";
import "./styles/tokens.css";
import "./styles/base.css";

// A part of the console is not there any more, because the server has another version by now.
window.addEventListener("vite:preloadError", reloadOnce);
applyTheme();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
