/** What a token of styles/tokens.css is now, for a canvas, which does not know light-dark(). */
export function themeColour(element: Element, name: string): string {
  const style = getComputedStyle(element);
  const value = style.getPropertyValue(name).trim();
  const match = /^light-dark\((.*),\s*([^,]+)\)$/.exec(value);
  if (!match) return value;
  const dark = style.colorScheme === "dark" || (style.colorScheme !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  return (dark ? match[2] : match[1])?.trim() ?? value;
}
