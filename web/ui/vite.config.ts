import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The console is built into web/dist, from where web.go embeds it.
//
// `npm run dev` serves the sources and passes calls of the API on to a server:
// COX_SERVER=http://127.0.0.1:7461 COX_TOKEN=cox_… npm run dev
const server = process.env.COX_SERVER ?? "http://127.0.0.1:7461";
const headers: Record<string, string> = process.env.COX_TOKEN
  ? { Authorization: `Bearer ${process.env.COX_TOKEN}` }
  : {};

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: ["chrome123", "firefox128", "safari17.5"],
    // The policy of pages forbids data: addresses for scripts and styles, and inline ones.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: "es" },
  server: { proxy: { "/v1": { target: server, headers } } },
  // `npm run preview` serves the built console under the same policy as a server does.
  preview: {
    proxy: { "/v1": { target: server, headers } },
    headers: {
      "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    },
  },
});
