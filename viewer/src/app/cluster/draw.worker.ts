// Draws beside the page, which is free meanwhile.

import { draw, type Picture } from "./draw";

onmessage = ({ data }: MessageEvent<Picture>) => {
  const bitmap = draw(data);
  postMessage(bitmap, { transfer: [bitmap] });
};
