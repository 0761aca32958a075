// What all pages share: which keys are shortcuts, and the switch between dark and light.

/** Inputs that are chosen or dragged, not typed into. */
const CHOSEN = ["range", "checkbox", "radio"];

/** Whether a key press is text input and not a shortcut. */
export function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  const isField = target instanceof HTMLInputElement && !CHOSEN.includes(target.type);
  const writes = target instanceof HTMLTextAreaElement || isField;
  return ctrlKey || metaKey || altKey || writes || target instanceof HTMLSelectElement;
}

export function toggleTheme(): void {
  const root = document.documentElement;
  const chosen = root.dataset["theme"];
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset["theme"] = isDark ? "light" : "dark";
}
