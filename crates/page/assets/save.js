(() => {
  "use strict";
  document.documentElement.classList.add("script");
  const button = document.getElementById("save");
  button?.addEventListener("click", () => {
    const text = document.getElementById("data").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = document.title.replace(/[^\w.-]+/g, "-").toLowerCase() + ".json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
