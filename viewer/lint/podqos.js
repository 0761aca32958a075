// Rules that oxlint does not have itself.

const MOST = 110;

/** Lines fit a screen. */
const lineLength = {
  meta: { type: "layout" },
  create(context) {
    return {
      Program() {
        context.sourceCode.lines.forEach((line, index) => {
          if (line.length <= MOST) return;
          const [start, end] = [MOST, line.length].map((column) => ({ line: index + 1, column }));
          context.report({ loc: { start, end }, message: `${line.length} characters, ${MOST} at most` });
        });
      },
    };
  },
};

export default { meta: { name: "podqos" }, rules: { "line-length": lineLength } };
