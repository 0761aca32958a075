// Names of files that are opened.

/** The path of a file below the directory that was given; its name otherwise. */
export function pathOf(file: File): string {
  return file.webkitRelativePath || file.name;
}
