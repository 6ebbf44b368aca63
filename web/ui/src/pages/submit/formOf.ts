import type { Submit } from "../../api/types";

export type Form = Extract<Submit["form"], "sbatch" | "native" | "manifest">;

export const formLabels: Record<Form, string> = { sbatch: "sbatch script", native: "YAML of Coxswain", manifest: "Kubernetes manifest" };

/** The form that a text seems to have, as cox submit guesses it. The reader may say another one. */
export function formOf(file: string, text: string): Form {
  if (text.startsWith("#!") || /^#SBATCH\b/m.test(text)) return "sbatch";
  if (/^apiVersion:/m.test(text) || /^\s*\{[^}]*"apiVersion"/.test(text)) return "manifest";
  if (/\.(ya?ml|json)$/.test(file) || /^[a-z_]+:(\s|$)/m.test(text)) return "native";
  return "sbatch";
}
