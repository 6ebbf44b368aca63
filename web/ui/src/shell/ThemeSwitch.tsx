import { setTheme, useTheme, type Theme } from "./theme";
import "./ThemeSwitch.css";

const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const labels: Record<Theme, string> = { system: "auto", light: "light", dark: "dark" };

/** Light, dark, or as the system says. */
export function ThemeSwitch() {
  const theme = useTheme();
  return (
    <button type="button" className="theme-switch" onClick={() => setTheme(next[theme])} aria-label={`Colours: ${labels[theme]}; change to ${labels[next[theme]]}`}>
      {labels[theme]}
    </button>
  );
}
