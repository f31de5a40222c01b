// What the programs of this folder share: steps, each of which prints one line of JSON with its name and what it gave.
import { strict as assert } from "node:assert";

export const host = process.env.SUITE_HOST;
export const port = Number(process.env.SUITE_PORT);

export async function step(name, run) {
    try {
        const gave = await run();
        console.log(JSON.stringify({ step: name, gave: JSON.stringify(gave) ?? "" }));
    } catch (error) {
        console.log(JSON.stringify({ step: name, error: String(error?.message ?? error) }));
    }
}

// The error that is expected, by its name and number.
export async function refused(promise) {
    try {
        await promise;
    } catch (error) {
        const by = error.original ?? error.parent ?? error.driverError ?? error;
        return { name: error.name, code: by.code, errno: by.errno };
    }
    assert.fail("was not refused");
}
