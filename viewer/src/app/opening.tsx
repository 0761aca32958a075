// Opening files: dropped on the page, chosen, or pasted. What they are is recognised by the server.

import { useLayoutEffect, useState } from "preact/hooks";
import { about, count } from "../format";
import type { SessionLimits } from "../schema";
import { pathOf } from "./paths";
import { Dialog, toast } from "./ui";

/** Files that belong together, and how many others were left out. */
export interface Given {
  files: readonly File[];
  skipped: number;
}

export type Upload = (given: Given) => void;

/** What is read from a directory; as `podqos ui DIRECTORY` does, and logs and usage tables. */
const READ_IN_DIRECTORIES = /\.(ya?ml|json|jsonl|csv|log|gz)$/i;
/** Directories of tools, which hold no manifests. */
const LEFT_OUT = /(^|\/)(\.[^/]+|node_modules)\//;

/** Leave out what is in a directory by chance. */
export function selected(files: readonly File[]): Given {
  const kept = files.filter((file) => {
    const path = pathOf(file);
    return !path.includes("/") || (READ_IN_DIRECTORIES.test(path) && !LEFT_OUT.test(path));
  });
  return { files: kept, skipped: files.length - kept.length };
}

/** Why files cannot be opened, before they are sent; empty if they can. */
export function refusal({ files, skipped }: Given, limits: SessionLimits | null): string {
  const [first] = files;
  if (first === undefined) {
    const none = "No file in this directory is a manifest, a log or a usage table.";
    return skipped > 0 ? none : "There is no file in it.";
  }
  if (limits === null) return "";
  if (files.length > limits.filesPerSource) {
    const most = count(limits.filesPerSource);
    return `${count(files.length)} files; at most ${most} can be opened together. Open a smaller directory.`;
  }
  // Several files are sent as text, which is larger by a third.
  const size = files.reduce((sum, file) => sum + file.size, 0) * (files.length > 1 ? 4 / 3 : 1);
  if (size <= limits.uploadBytes) return "";
  const what = files.length === 1 ? `${first.name} has` : `${count(files.length)} files have`;
  const sum = files.reduce((total, file) => total + file.size, 0);
  const most = about(limits.uploadBytes);
  return `${what} ${about(sum)}; at most ${most} can be opened here. Run podqos ui with the path instead.`;
}

/** Return the dropped files, including those in directories. */
async function dropped(transfer: DataTransfer): Promise<File[]> {
  const taken: File[] = [];
  const take = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isDirectory) {
      const reader = (entry as FileSystemDirectoryEntry).createReader();
      type Entries = FileSystemEntry[];
      const list = () => new Promise<Entries>((resolve, reject) => reader.readEntries(resolve, reject));
      // A directory is listed in portions.
      for (let some: Entries; (some = await list()).length > 0; ) for (const inner of some) await take(inner);
      return;
    }
    const open = (entry as FileSystemFileEntry).file.bind(entry);
    const file = await new Promise<File>((resolve, reject) => open(resolve, reject));
    const path = entry.fullPath.replace(/^\//, "");
    Object.defineProperty(file, "webkitRelativePath", { value: path.includes("/") ? path : "" });
    taken.push(file);
  };
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry());
  const files = [...transfer.files];
  for (const [index, entry] of entries.entries()) {
    if (entry !== null) await take(entry);
    else if (files[index]) taken.push(files[index]);
  }
  return taken;
}

export function DropZone({ upload }: { upload: Upload }) {
  const [isOver, setOver] = useState(false);
  useLayoutEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!hasFiles(event) || event.dataTransfer === null) return;
      event.preventDefault();
      const failed = (error: unknown) => toast(`The files cannot be read: ${String(error)}`, true);
      void dropped(event.dataTransfer).then((files) => upload(selected(files)), failed);
    };
    const listeners = { dragover: over, dragleave: leave, drop } as const;
    for (const [event, listener] of Object.entries(listeners)) {
      document.addEventListener(event, listener as EventListener);
    }
    return () => {
      for (const [event, listener] of Object.entries(listeners)) {
        document.removeEventListener(event, listener as EventListener);
      }
    };
  }, [upload]);
  return isOver ? (
    <div class="drop" role="status">
      <p>Drop manifests, a snapshot, a scenario with its files, or a kernel log</p>
    </div>
  ) : null;
}

/** Two fields: for files, and for a directory. */
export function Choosers({ upload }: { upload: Upload }) {
  const choose = (event: { currentTarget: HTMLInputElement }) => {
    const files = [...(event.currentTarget.files ?? [])];
    // The same file may be chosen again.
    event.currentTarget.value = "";
    if (files.length > 0) upload(selected(files));
  };
  return (
    <>
      <label class="field">
        <span>Files</span>
        <input type="file" multiple onChange={choose} />
      </label>
      <label class="field">
        <span>or a directory</span>
        <input type="file" {...{ webkitdirectory: true }} onChange={choose} />
      </label>
    </>
  );
}

interface Opening {
  upload: Upload;
  close: () => void;
  limits: SessionLimits | null;
  paste: (text: string) => void;
}

export function OpenDialog(props: Opening) {
  const [text, setText] = useState("");
  const limit = props.limits?.uploadBytes;
  return (
    <Dialog title="Open" close={props.close}>
      <p class="quiet">
        Manifests, a cluster snapshot, a scenario with the files it names, or a kernel log
        {limit ? `, up to ${about(limit)}` : ""}. They are sent to podqos ui and nowhere else.
      </p>
      <Choosers upload={props.upload} />
      <label class="field tall">
        <span>or paste</span>
        <textarea
          rows={10}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <p>
        <button
          type="button"
          class="tool primary"
          disabled={text.trim() === ""}
          onClick={() => props.paste(text)}
        >
          Open pasted text
        </button>
      </p>
    </Dialog>
  );
}
