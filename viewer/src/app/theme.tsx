// The switch between dark and light, for pages that are files: the app has its own.

import { toggleTheme } from "../frame";

export function Theme() {
  return (
    <button
      type="button"
      class="tool theme"
      title="Toggle dark mode (t)"
      aria-label="Toggle dark mode"
      onClick={toggleTheme}
    >
      ◐
    </button>
  );
}
